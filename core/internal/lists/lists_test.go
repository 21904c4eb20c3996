package lists_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/internal/lists"
)

// A list has what was added and not removed, in order, and a snapshot does not change.
func TestList(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var l lists.List[string]
	var want []string
	var numbers []uint64
	for range 2000 {
		if len(want) == 0 || random.IntN(2) == 0 {
			name := string(rune('a' + random.IntN(26)))
			want, numbers = append(want, name), append(numbers, l.Add(name))
		} else {
			i := random.IntN(len(want))
			if got := l.Remove(numbers[i]); got != want[i] || l.Remove(numbers[i]) != "" {
				t.Fatalf("removed %q, want %q, once", got, want[i])
			}
			want, numbers = slices.Delete(want, i, i+1), slices.Delete(numbers, i, i+1)
		}
		last := ""
		if len(want) > 0 {
			last = want[len(want)-1]
		}
		if l.Len() != len(want) || l.Last() != last {
			t.Fatalf("got %d, the last is %q, want %d and %q", l.Len(), l.Last(), len(want), last)
		}
		if random.IntN(10) > 0 {
			continue
		}
		before := l.Snapshot()
		copied := slices.Clone(before)
		if !slices.Equal(before, want) {
			t.Fatalf("got %q, want %q", before, want)
		}
		if len(want) > 0 {
			l.Remove(numbers[0])
			want, numbers = want[1:], numbers[1:]
		}
		if !slices.Equal(before, copied) {
			t.Fatalf("the snapshot has changed to %q", before)
		}
	}
}

func TestPutAndWithout(t *testing.T) {
	var m map[string]int
	lists.Put(&m, "a", 1)
	if lists.Put(&m, "b", 2); m["a"] != 1 || m["b"] != 2 {
		t.Errorf("got %v", m)
	}
	list := []int{1, 2, 1}
	if got := lists.Without(list, 1); !slices.Equal(got, []int{2, 1}) || !slices.Equal(list, []int{1, 2, 1}) {
		t.Errorf("got %v of %v", got, list)
	}
	if got := lists.Without(list, 3); !slices.Equal(got, list) {
		t.Errorf("got %v, want all", got)
	}
}
