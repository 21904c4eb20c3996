package flow

import (
	"go/token"
	"strings"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/roles"
)

// Characters that stand for what is not known.
const (
	Hole  = roles.Any // any text
	Known = "\x01"    // the name of a signal that the program raises
)

// Text is what a text of the program may be.
type Text struct {
	S     string
	Pos   token.Pos // where it is written
	Via   token.Pos // the argument from which a helper got it, or a part of it
	Loose bool      // it may be put together of pieces that do not belong together
}

// Open reports whether nothing of the text is known.
func (t Text) Open() bool { return strings.Trim(t.S, Hole+Known) == "" && t.S != "" }

// Exact reports whether all of the text is known.
func (t Text) Exact() bool { return !strings.ContainsAny(t.S, Hole+Known) }

// String shows the text, with "..." for what is not known.
func (t Text) String() string { return strings.NewReplacer(Hole, "...", Known, "...").Replace(t.S) }

// most is how many texts one expression may have. Beyond that it is a hole.
const most = 256

// join returns the concatenations of the texts of both sides.
func join(left, right []Text) []Text {
	if len(left)*len(right) == 0 {
		return nil
	}
	if len(left)*len(right) > most {
		return []Text{{S: Hole, Pos: left[0].Pos}}
	}
	var all []Text
	for _, l := range left {
		for _, r := range right {
			t := Text{S: l.S + r.S, Pos: l.Pos, Via: max(l.Via, r.Via), Loose: l.Loose || r.Loose || len(left) > 1 && len(right) > 1}
			if l.S == "" || !t.Pos.IsValid() || l.Open() {
				t.Pos = r.Pos
			}
			all = append(all, t)
		}
	}
	return all
}

// unite returns the texts without repetitions.
func unite(texts []Text) []Text {
	seen := map[Text]bool{}
	var all []Text
	for _, t := range texts {
		t.S = strings.ReplaceAll(t.S, Hole+Hole, Hole)
		if !seen[t] {
			seen[t] = true
			all = append(all, t)
		}
	}
	if len(all) > most*4 {
		return []Text{{S: Hole, Pos: all[0].Pos}}
	}
	return all
}
