"""Heat that spreads over a square, which has a closed form on its grid."""
