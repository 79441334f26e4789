// Live parts: see below.
