"""Downloads data sets, and recognises, cleans and lays out their files."""
