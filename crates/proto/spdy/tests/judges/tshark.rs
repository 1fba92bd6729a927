//! tshark's dissector on a conversation of two of our sessions, written as TCP in clear.
