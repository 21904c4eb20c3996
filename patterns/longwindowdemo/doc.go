// Package longwindowdemo shows that the window of a coordinator bounds its memory. Of all
// operations that have ended, the window shows only the newest ones, at most
// [core.Options.MaxTracked].
//
// With a long window, you can look up the work of the last day:
//
//	core.Options{MaxTracked: 10_000, MaxAge: 24 * time.Hour}
package longwindowdemo
