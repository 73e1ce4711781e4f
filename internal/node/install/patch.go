package install

// patch is bytes that replace those of the image at an offset.
type patch struct {
	offset int64
	data   []byte
}

// touches reports whether the patch changes any of length bytes at offset.
func (p patch) touches(offset, length int64) bool {
	return p.offset < offset+length && offset < p.offset+int64(len(p.data))
}

// apply changes b, which are the bytes of the image at offset.
func (p patch) apply(b []byte, offset int64) {
	from, to := max(p.offset, offset), min(p.offset+int64(len(p.data)), offset+int64(len(b)))
	if from < to {
		copy(b[from-offset:to-offset], p.data[from-p.offset:to-p.offset])
	}
}
