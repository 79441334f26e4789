"""
Child processes of Orderkit: started with limits, asked over a socket, and always ended.

``child_process`` starts, limits, asks and ends one child. ``confined_rendering`` uses it to render
templates that nobody vouches for, plans over many orders use it for the stations of two packs,
``orderkit kit check`` for runs with other hash seeds, and ``forking_parent`` with
``station_workers`` for the stations that ``orderkit stations`` serves.
"""
