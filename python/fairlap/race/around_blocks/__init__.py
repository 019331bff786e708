"""What a race does before and after its blocks, in processes that are in none of them."""
