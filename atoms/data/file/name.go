package file

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Prefixes of the files in the directory of a store. All names are in lower case, without dots
// and blanks, and begin with a letter and a dash. So no file system changes them, and none is
// the name of a device.
const (
	plainName = "k-" // followed by the escaped key
	hashName  = "h-" // followed by the SHA-256 of a key whose name would be too long
	tempName  = "t-" // followed by a random text: a file that is being written
	lockName  = "lock"

	maxName = 140 // some file systems have names of 143 bytes at most
)

// nameOf returns the name of the file with the value of key.
func nameOf(key string) string {
	if name := plainName + escape(key); len(name) <= maxName {
		return name
	}
	return fmt.Sprintf("%s%x", hashName, sha256.Sum256([]byte(key)))
}

var hashed = regexp.MustCompile("^" + hashName + "[0-9a-f]{64}$")

// keyOf is the inverse of nameOf. Ok is false for names of other files. If the name is a hash,
// keyOf returns no key.
func keyOf(name string) (key string, ok bool) {
	if hashed.MatchString(name) {
		return "", true
	}
	key, err := url.PathUnescape(strings.TrimPrefix(name, plainName))
	return key, err == nil && key != "" && nameOf(key) == name
}

// escape leaves lower-case letters, digits, dashes and underscores, and replaces all other
// bytes by a percent sign and two hexadecimal digits.
func escape(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return b.String()
}
