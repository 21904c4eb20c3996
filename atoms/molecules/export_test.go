package molecules

// Listed is how many runs the runner has on its list.
func Listed(r *Runner) int {
	r.roll.mu.Lock()
	defer r.roll.mu.Unlock()
	return max(len(r.roll.runs), len(r.roll.groups))
}

// Listens reports whether the runner has subscriptions.
func Listens(r *Runner) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reactor.mu.Lock()
	defer r.reactor.mu.Unlock()
	return len(r.unawait)+len(r.unlisten) > 0
}

// Remembered is of how many groups the runner remembers what came for runs that
// have ended.
func Remembered(r *Runner) int {
	r.roll.mu.Lock()
	defer r.roll.mu.Unlock()
	return max(len(r.roll.heard), len(r.roll.order))
}
