//! The program `tope`. Sockets, files and signals live here and nowhere else.
