"""The HTTPS transport: a bare ASGI application on uvicorn, with client certificates and a graceful end."""
