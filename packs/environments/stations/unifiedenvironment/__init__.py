"""The kit `unifiedenvironment`: how an order of it is assembled."""
