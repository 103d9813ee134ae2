"""The loop that turns events into plans and plans into writes: capability, queue, reconciler, leader, health."""
