// Package mesh raises a signal for each call of a method.
//
//	n, err := mesh.New(mesh.Options{})
//	if err != nil {
//		return err
//	}
//	n.Do("order-1")
//
// It starts no goroutine and needs no closing.
package mesh
