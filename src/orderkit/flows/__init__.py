"""The stories: order, register, list, status, trace, destroy, bootstrap. They talk to ports."""
