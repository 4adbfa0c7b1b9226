"""What is drawn: options of charts, curves that move, how a memory fades, the picture of links."""
