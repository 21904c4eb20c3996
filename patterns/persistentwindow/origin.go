package persistentwindow

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"weak"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// An Origin says where a restored signal was raised.
type Origin struct {
	Boot uint64 // the number of the sink in that process
	Seq  uint64 // Signal.Seq in that sink
	//ephemeral:none
	Source    string           // Signal.Source in that process
	Operation core.OperationID // Signal.Operation in that process; it names no operation of this process
}

// OriginOf returns the origin of a restored signal. For other signals it returns false.
func OriginOf(s signals.Signal) (o Origin, ok bool) {
	if s.Operation != 0 || !strings.HasPrefix(s.Source, "boot:") || strings.Count(s.Source, ":") < 4 {
		return o, false
	}
	_, err := fmt.Sscanf(s.Source, "boot:%x:%d:%d:", &o.Boot, &o.Seq, &o.Operation)
	o.Source = strings.SplitN(s.Source, ":", 5)[4]
	return o, err == nil
}

// text is the Source of a restored signal, "boot:1f3a:17:42:orders": boot, Seq, operation
// and source.
func (o Origin) text() string {
	return fmt.Sprintf("boot:%x:%d:%d:%s", o.Boot, o.Seq, uint64(o.Operation), o.Source)
}

// A life is a sink in this process. All windows on the sink share it.
type life struct {
	boot     uint64
	restored sync.Map // the Sources of the signals that were restored to the sink
}

var lives sync.Map // from weak.Pointer[signals.Sink] to *life

func lifeOf(sink *signals.Sink) *life {
	key := weak.Make(sink)
	l, known := lives.LoadOrStore(key, &life{boot: rand.Uint64() >> 1})
	if !known {
		runtime.AddCleanup(sink, func(key weak.Pointer[signals.Sink]) { lives.Delete(key) }, key)
	}
	return l.(*life)
}
