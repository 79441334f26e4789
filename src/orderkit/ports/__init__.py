"""What the stories need of the world, as small Protocols with one contract suite each."""
