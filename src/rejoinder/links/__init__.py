"""Which earlier message of a channel each message answers, where the export does not say."""
