"""The console: pages for people at the service's ``/``, over the same operations as the API."""
