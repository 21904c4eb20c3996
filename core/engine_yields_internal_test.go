package core

import "testing"

// Yields pay until two in a row are long, and again after four times as long.
func TestYieldsPayWhileTheyAreShort(t *testing.T) {
	const long = int64(longYield) + 1
	for _, test := range []struct {
		name  string
		took  []int64
		queue uint64
		rests int64
	}{
		{"none", nil, 1, 0},
		{"short ones", []int64{1, long - 1, 1}, 1, 0},
		{"a long one", []int64{1, long}, 1, 0},
		{"long ones between short ones", []int64{long, 1, long, 1}, 1, 0},
		{"two long ones", []int64{1, long, long + 10}, 1, 4 * (long + 10)},
		{"three long ones", []int64{long, long, 2 * long}, 1, 8 * long},
		{"not long for a longer queue", []int64{long, long}, 2, 0},
		{"no queue", []int64{long - 1, long - 1}, 0, 0},
	} {
		var y yields
		now := int64(100)
		for _, took := range test.took {
			y.note(now, now+took, test.queue)
			now += took
		}
		if y.pay(now+test.rests-1) != (test.rests == 0) || !y.pay(now+test.rests) {
			t.Errorf("%s: got until %d, want %d", test.name, y.until.Load(), now+test.rests)
		}
	}
}
