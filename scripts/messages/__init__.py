"""Readers of the messages in the sources of other programs, for scripts/message_texts."""
