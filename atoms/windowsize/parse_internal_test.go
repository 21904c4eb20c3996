package windowsize

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Every duration up to 200 years, and every size, is read back from each form that it can
// be written in.
func TestParseReadsAllForms(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const day = 24 * time.Hour
	for range 10_000 {
		d := time.Duration(random.Int64N(int64(1) << random.IntN(62)))
		days, hours, rest := d/day, d%day/time.Hour, d%time.Hour
		clock := fmt.Sprintf("%d:%d:%d.%09d", hours, rest/time.Minute, rest%time.Minute/time.Second, rest%time.Second)
		forms := []string{d.String(), strings.ToUpper(d.String()), " " + d.String() + " ", fmt.Sprintf("%d.%s", days, clock)}
		if days == 0 {
			forms = append(forms, clock)
		}
		for _, text := range forms {
			if got, err := parseAge(text); err != nil || got != d {
				t.Fatalf("%q: %v, %v, want %v", text, got, err, d)
			}
		}
		size := int(d) & math.MaxInt // an int may have 32 bits
		text := fmt.Sprint(size)
		if n, err := parseSize(text); err != nil || n != size {
			t.Fatalf("%q: %d, %v", text, n, err)
		}
	}
	if n, err := parseSize("99999999999999999999"); err != nil || n != math.MaxInt {
		t.Errorf("too large: %d, %v", n, err)
	}
}
