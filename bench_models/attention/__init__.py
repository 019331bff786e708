"""One scaled dot-product attention with several heads, over keys and values that the model owns."""
