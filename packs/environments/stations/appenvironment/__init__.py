"""The kit `appenvironment`: how an order of it is assembled."""
