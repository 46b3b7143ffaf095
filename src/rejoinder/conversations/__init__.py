"""What people do with conversations: ask again, suggest replies, group, find duplicates."""
