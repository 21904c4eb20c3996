package signals

import "github.com/ephemeralgo/ephemeral/core/internal/glob"

// Match reports whether name matches pattern. It is the one pattern language of
// the library, used wherever a signal pattern is accepted:
//
//   - "*" stands for any run of characters, dots and colons included, or none;
//   - "?" stands for exactly one character;
//   - anything else stands for itself, case-sensitively, so a pattern without
//     "*" and "?" is an exact name;
//   - commas separate alternatives: "error.*, timeout" matches either. Blanks
//     around an alternative are trimmed and empty alternatives are ignored, so
//     an empty pattern matches nothing.
//
// Matching allocates nothing and takes at worst len(pattern) x len(name) steps.
//
//ephemeral:match {pattern} {name}
func Match(pattern, name string) bool { return glob.Match(pattern, name) }
