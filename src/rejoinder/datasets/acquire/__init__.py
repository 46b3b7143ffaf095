"""Gets data sets: recognises, cleans and lays out local files, archives and downloads."""
