"""The gRPC protocols between a node agent, its drivers and its device plugins.

The .proto files are written from the field tables of the protocols; ``tools/generate_wire.py`` turns them into the
modules of ``generated``. Other rooms never touch those: they see typed records and typed clients and servers (``dra``,
``registration``, ``health``, ``device_plugin``, ``pod_resources``) over one transport (``transport``), and the folder
layout that both sides of a node agree on (``paths``).
"""
