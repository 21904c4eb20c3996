package batching

// StopTimer stops the timer of the batcher and reports whether it was set.
func StopTimer[T any](b *Batcher[T]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.timer.Stop()
}
