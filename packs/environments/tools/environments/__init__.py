"""Tools of the environments' pack that run in pipelines. They need no Orderkit."""
