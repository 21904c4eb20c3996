package postgres

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// maxHashes keeps a notification below 8,000 bytes; a longer one would abort the change.
const maxHashes = 400

// KeyHash returns the 16 hexadecimal digits that stand for a key in notifications. The payload
// of a notification is the KeyHash of each key that the transaction may have changed, with
// blanks between them. If there are more than 400 keys, or all keys have changed, the payload
// is "*".
func KeyHash(key string) string {
	h := fnv.New64a()
	h.Write([]byte(key))
	return fmt.Sprintf("%016x", h.Sum64())
}

// withNotice appends the notification of the keys, if there is a channel. Nil means all keys.
func (e *engine) withNotice(keys []string, statements ...statement) []statement {
	if e.opts.Notify == "" {
		return statements
	}
	payload := "*"
	if len(keys) > 0 && len(keys) <= maxHashes {
		hashes := make([]string, len(keys))
		for i, key := range keys {
			hashes[i] = KeyHash(key)
		}
		payload = strings.Join(hashes, " ")
	}
	return append(statements, statement{"select pg_catalog.pg_notify($1::text, $2::text)", []any{e.opts.Notify, payload}})
}
