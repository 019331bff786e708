"""Operations on which digits are lost: contestants are ranked by time among those that keep enough of them."""
