package statuspage

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
)

// minZipped is how long a body must be to be compressed. Below it, most bodies fit into one packet.
const minZipped = 1024

// compressed returns a body in the encoding that the client accepts, and sets the headers that say so.
func compressed(w http.ResponseWriter, r *http.Request, body []byte) []byte {
	w.Header().Set("Vary", "Accept-Encoding")
	if len(body) < minZipped || !acceptsGzip(r.Header.Get("Accept-Encoding")) {
		return body
	}
	var small bytes.Buffer
	z := gzip.NewWriter(&small)
	z.Write(body) // a buffer returns no error
	z.Close()
	w.Header().Set("Content-Encoding", "gzip")
	return small.Bytes()
}

// acceptsGzip reports whether gzip is in a list such as "br;q=1.0, gzip;q=0.8". A quality of 0 forbids it.
func acceptsGzip(list string) bool {
	for coding := range strings.SplitSeq(list, ",") {
		name, quality, found := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";q=")
		if strings.EqualFold(name, "gzip") {
			return !found || strings.ContainsAny(quality, "123456789")
		}
	}
	return false
}
