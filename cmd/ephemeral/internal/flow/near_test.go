package flow

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		pattern, name  string
		matches, exact bool
	}{
		{"order.shipped", "order.shipped", true, true},
		{"order.shiped", "order.shipped", false, false},
		{"order.*", "order.shipped", true, true},
		{"order.*", "order.", true, true},
		{"*.done", "a.b.done", true, true},
		{"stage?.done", "stage1.done", true, true},
		{"stage?.done", "stage.done", false, false},
		{"a*b*c", "abbbc", true, true},
		{"order.*", "order." + Hole, true, true},
		{"order.7", "order." + Hole, true, false},
		{"*.done", "order:" + Hole, true, false},
		{"*:*", "order:" + Hole, true, true},
		{"bill.*", "order." + Hole, false, false},
		{"order." + Hole, "order.shipped", true, true},
		{"ordre." + Hole, "order.shipped", false, false},
		{"shop.*.ready", "shop.*.*.ready", true, true},
		{"", "", true, true},
	} {
		if got := Match(test.pattern, test.name, false); got != test.matches {
			t.Errorf("Match(%q, %q) = %v", test.pattern, test.name, got)
		}
		if got := Match(test.pattern, test.name, true); got != test.exact {
			t.Errorf("strict Match(%q, %q) = %v", test.pattern, test.name, got)
		}
	}
}

func TestCorrected(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		changes       int
		want          string
	}{
		{"wharehouse.closed", "warehouse.closed", 1, "warehouse.closed"},
		{"ordre.*", "order.shipped", 1, "order.*"},
		{"*.faield", "file.failed", 1, "*.failed"},
		{"order.shp?ed", "order.shipped", 1, "order.ship?ed"},
		{"oder." + Hole, "order.shipped", 1, "order." + Hole},
		{"order.x.seen", "order." + Hole + ".seen", 0, ""},
		{"rder.x.seen", "order." + Hole + ".seen", 1, "order.x.seen"},
		{"bill.paid", "order.shipped", 4, ""},
	} {
		changes, got := Corrected(test.pattern, test.name, 3, false)
		if changes == 0 {
			got = ""
		}
		if changes != test.changes || got != test.want {
			t.Errorf("Corrected(%q, %q) = %d, %q, want %d, %q", test.pattern, test.name, changes, got, test.changes, test.want)
		}
	}
}

// A long text costs no more than a long name: each of these would take minutes and gigabytes.
func TestLongTextsEnd(t *testing.T) {
	long := strings.Repeat("order.", 200_000)
	if !Match(long+"*"+long, long+Hole+long, false) || Match(long+"*"+long, long+Hole+long, true) {
		t.Error("long texts that do not differ may match, but do not surely")
	}
	if Match(long+"*", "bill."+Hole, false) {
		t.Error("long texts that differ match")
	}
	if changes, text := Corrected(long+"x", long+"y", 2, false); changes != 3 || text != "" {
		t.Errorf("got %d changes of a long text", changes)
	}
	if changes, _ := Corrected("order.shiped", "order.shipped", 2, false); changes != 1 {
		t.Errorf("got %d changes of a short text", changes)
	}
}
