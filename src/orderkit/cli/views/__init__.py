"""How results look: text for people, or one JSON object."""
