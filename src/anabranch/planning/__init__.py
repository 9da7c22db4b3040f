"""Planning: each query is bound and analysed once, and becomes a plan and a job."""
