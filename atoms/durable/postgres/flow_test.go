package postgres

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A flow waits for the signals that its pattern matches, also if it has characters that LIKE reads in its own way.
func TestPatterns(t *testing.T) {
	s := open(t)
	names := []string{"", "a", "ab", "a.b", "a:b.c", "aé", "é", "a_b", "a%b", `a\b`, `a\%b`, "axb", "a b", " a", "a\nb", "approval.given", "approval.refused", "A", "*", "?", "日本"}
	for _, pattern := range []string{"", "*", "?", "a", "a*", "*b", "a?b", "a??b", "*.*", "a_b", "a%b", `a\b`, `a\*`, `a\?b`, " a , *b ,", ",,", "\u00a0a\u00a0", "approval.given, approval.refused", "approval.*", "?b", "日?", "a b", "**", "*?"} {
		var matches []string
		rows, err := s.pool.Query(t.Context(), "select name from unnest($1::text[]) as name where name like any(string_to_array($2, ','))", names, likes(pattern))
		require.NoError(t, err)
		for rows.Next() {
			var name string
			require.NoError(t, rows.Scan(&name))
			matches = append(matches, name)
		}
		require.NoError(t, rows.Err())
		var want []string
		for _, name := range names {
			if signals.Match(pattern, name) {
				want = append(want, name)
			}
		}
		assert.Equal(t, want, matches, "%q", pattern)
	}
}
