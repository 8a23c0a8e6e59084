// Package netns gives tests a network namespace of their own: interfaces, addresses, routes and settings of the kernel that nobody else sees
// and that vanish with the test, even if it is killed. It takes root and exists on Linux only; it is not made for programs.
package netns
