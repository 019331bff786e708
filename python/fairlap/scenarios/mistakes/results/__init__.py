"""What planted mistakes showed of each contestant."""
