"""What the documentation's example imports."""

constexpr = int
