"""What people read: a run as one HTML file, and its charts as pictures."""
