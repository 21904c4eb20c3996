package file

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"net/url"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

// A file is a line and then the bytes of the value. The line is
//
//	ephemeral1 CHECKSUM LENGTH KEY
//
// with the CRC-32C of key and value in eight hexadecimal digits, the length of the value in
// bytes, and the key as in names.
const (
	headFormat = "ephemeral1 %08x %d %s\n"
	maxHead    = 64 + 3*data.MaxKey
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func headOf(key string, value []byte) []byte {
	sum := crc32.Update(crc32.Checksum([]byte(key), castagnoli), castagnoli, value)
	return fmt.Appendf(nil, headFormat, sum, len(value), escape(key))
}

// parse returns the key and the value in a file, and whether every byte is as it was written.
// To check that, it compares the first line with the line that key and value must have.
func parse(file []byte) (key string, value []byte, whole bool) {
	head, value, _ := bytes.Cut(file, []byte("\n"))
	key, _ = url.PathUnescape(string(head[bytes.LastIndexByte(head, ' ')+1:]))
	return key, value, bytes.HasPrefix(file, headOf(key, value))
}
