"""Log formats, a reader each: lines in, `Request` or `Step` out. ``catalogue`` lists and recognises them."""
