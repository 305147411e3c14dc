"""gRPC messages between kubelet and drivers, and the folders they meet in."""
