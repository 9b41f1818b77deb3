"""Commands that operate Costguard itself: bundles, deployment, permissions, audit."""
