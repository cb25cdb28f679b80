"""Packs and what is done with them: checked, copied in blocks, unpacked, looked into."""
