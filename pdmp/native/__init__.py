"""How small classes become machine code, and the numeric helpers that compiled code needs."""
