package signals_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// simpleMatch is a simple implementation of the pattern language.
func simpleMatch(pattern, name string) bool {
	for part := range strings.SplitSeq(pattern, ",") {
		if part = strings.TrimSpace(part); part != "" && simpleMatchTerm([]rune(part), []rune(name)) {
			return true
		}
	}
	return false
}

func simpleMatchTerm(term, name []rune) bool {
	switch {
	case len(term) == 0:
		return len(name) == 0
	case term[0] == '*':
		return simpleMatchTerm(term[1:], name) || len(name) > 0 && simpleMatchTerm(term, name[1:])
	case len(name) == 0:
		return false
	case term[0] == '?' || term[0] == name[0]:
		return simpleMatchTerm(term[1:], name[1:])
	}
	return false
}

func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{
		{"", ""}, {"*", ""}, {"?", "a"}, {"a", "a"}, {"a,b", "b"}, {" a.* ,\tb?", "a.b.c"},
		{"request.*.health.failed", "request.*.*.health.failed"}, {"*b", "*ab"}, {"**x", "*x"},
		{"error.*.critical", "error.payment.critical"}, {"user-???-failed", "user-123-failed"},
		{"a*b*c", "aXbYbZc"}, {"*a*a*a", "aaaa"}, {"?é*", "🜁é"}, {",", ","}, {"a,b", "a,b"},
		{"\u00a0a\u00a0", "a"}, {"rate-limit:*", "rate-limit:5000ms"}, {"*?", "世"},
		{"order.*.created, *.item.* ,request.*.a.*.completed", "request.gateway.a.batch.completed"}, {"a*\xa9", "a©"},
		{"x,", "x,"}, {" x ", " x "}, {"a*b*bc", "abbc"}, {"a**a", "a"}, {"a*\xe9*b", "a\xe9éb"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		for term := range strings.SplitSeq(pattern, ",") {
			if len(name) > 40 || strings.Count(term, "*") > 4 {
				t.Skip("too long for the simple matcher")
			}
		}
		got := signals.Match(pattern, name)
		if utf8.ValidString(pattern) && utf8.ValidString(name) { // in other texts each byte is a character
			if want := simpleMatch(pattern, name); got != want {
				t.Errorf("Match(%q, %q) = %v, want %v", pattern, name, got, want)
			}
		}
		if name != "" { // and all who take patterns agree
			if has := askSink(pattern, name); has != got {
				t.Errorf("Match(%q, %q) = %v, but a sink says %v", pattern, name, got, has)
			}
		}
	})
}

func FuzzParseCommand(f *testing.F) {
	for _, seed := range [][2]string{
		{"window.size.set:100", "window.size.set"}, {"app.window.size.set:200", "window.size.set"},
		{"reset:5", "set"}, {"set.set:1", "set"}, {"a.a.a:1", "a.a"}, {"set:", "set"}, {":", ""},
		{"window.age.set:00:30:00", "window.age.set"}, {"a::b", ":"}, {"a:b:c", "b"}, {"app:window.size.set:200", "window.size.set"},
		{"note: a b  !", "note"}, {"set:1:set:2", "set"}, {"sets.set:1", "set"}, {"a.b.a.b:1", "a.b"}, {"aa.aaa:1", "aa"}, {"set", "set"},
		{"set.x:1", "set"}, {"SET:1", "set"}, {"", "set"}, {"set:1", ""}, {"", ""}, {"x-set:1", "set"}, {"reset:set:5", "set"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, name, command string) {
		// The first place that fits, tried one by one.
		want, wantOK := "", false
		for i := range len(name) + 1 {
			rest, ok := strings.CutPrefix(name[i:], command+":")
			if command != "" && ok && (i == 0 || strings.ContainsRune(".:", rune(name[i-1]))) {
				want, wantOK = rest, true
				break
			}
		}
		got, ok := signals.ParseCommand(name, command)
		coretest.Check(t, got == want && ok == wantOK, "ParseCommand(%q, %q) = %q, %v, want %q, %v", name, command, got, ok, want, wantOK)
	})
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, seed := range []string{
		"rate-limit:5000ms", "rate-limit: 7MS ", "rate-limit:-1ms", "a:b:5ms", "a:9223372036854ms",
		"a:9223372036855ms", "a:18446744073709551616ms", "a:ms", "a:5s", "a", "", "a:0x5ms", "a:٣ms",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		d, ok := signals.ParseRetryAfter(name)
		if d < 0 || d%time.Millisecond != 0 || !ok && d != 0 {
			t.Fatalf("ParseRetryAfter(%q) = %v, %v", name, d, ok)
		}
		if !ok {
			return
		}
		arg, _ := signals.Signal{Name: name}.Arg()
		digits := strings.TrimLeft(strings.ToLower(strings.TrimSpace(arg)), "0")
		want := ""
		if d > 0 {
			want = strconv.FormatInt(d.Milliseconds(), 10)
		}
		coretest.Check(t, digits == want+"ms", "ParseRetryAfter(%q) = %v", name, d)
	})
}

// A signal from a file is refused or read. If it is read, it stays the same when it is written again and when it
// is restored.
func FuzzSignalJSON(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","time":"2024-05-01T12:00:00Z","seq":3}`,
		`{"name":"b","key":"k","operation":7,"source":"w","time":"2024-05-01T12:00:00.5+02:00","seq":9,"held":true,"causes":["x","y"]}`,
		`{}`, `null`, `[]`, `{"name":5}`, `{"causes":[null,""]}`, `{"operation":18446744073709551615}`, `{"time":"0000-01-01T00:00:00Z"}`,
		`{"NAME":"a"}`, `{"name":"\ud800"}`, `{"seq":-1}`, `{"name":"*,?","time":"9999-12-31T23:59:59.999999999-23:59"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s signals.Signal
		if err := json.Unmarshal(data, &s); err != nil {
			coretest.Check(t, s.Name == "" && s.Depth() == 0, "%q: refused with %v, but gave %+v", data, err, s)
			return
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("%q: understood as %+v, which cannot be written: %v", data, s, err)
		}
		same := func(what string, got signals.Signal) {
			if got.Name != s.Name || got.Key != s.Key || got.Operation != s.Operation || got.Source != s.Source || !slices.Equal(got.Path(), s.Path()) {
				t.Errorf("%q: %s gave %+v, want %+v", data, what, got, s)
			}
		}
		var again signals.Signal
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("%q: written as %q, which is refused: %v", data, text, err)
		}
		same("reading it again", again)
		coretest.Check(t, again.Time.Equal(s.Time) && again.Seq == s.Seq && again.Held == s.Held, "%q: reading it again gave %+v, want %+v", data, again, s)
		sink := signals.NewSink(signals.SinkOptions{MaxAge: -1})
		if got := sink.Restore(slices.Values([]signals.Signal{s})); got != 1 && s.Name != "" || got != 0 && s.Name == "" {
			t.Errorf("%q: restored %d", data, got)
		}
		for got := range sink.Sense(signals.Query{}) {
			same("restoring it", got)
		}
	})
}
