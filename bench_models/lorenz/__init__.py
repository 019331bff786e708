"""Three equations that are chaotic, over a time in which errors grow a hundredfold."""
