"""The backends by name. To add one, add its entry here.

Those of `FREE` were run, and MPAX on processors. The packages of the others, and all methods on a GPU, need a licence, a graphics card or
another language: the names of their options come from CVXPY's interfaces and from manuals, and nobody has run them here.
"""

from __future__ import annotations

from functools import partial

from bench_mtl.core.devices import no_gpu
from bench_mtl.solvers.accelerator.device import obstacle
from bench_mtl.solvers.conic.backend import FIRST_ORDER, INTERIOR, SIMPLEX, Backend, Method, Package
from bench_mtl.solvers.conic.cupdlpx import cupdlpx_interface
from bench_mtl.solvers.conic.mpax import mpax_interface
from bench_mtl.solvers.conic.pdlp import pdlp_interface

#: Stand-ins for "no iteration limit"; time is the limit that binds.
_MANY, _MANY_NEWTON = 10_000_000, 1000

_GAPS = ("tol_gap_abs", "tol_gap_rel", "tol_feas")


_LINEAR = frozenset({"linear"})
_HALPERN = {"algorithm": "r2HPDHG"}

#: What anybody can install and run.
FREE: dict[str, Backend] = {
    "ECOS": Backend(Package("ecos"), ("abstol", "reltol", "feastol"), Method(INTERIOR), fixed={"max_iters": _MANY_NEWTON}),
    "SCS": Backend(
        Package("scs"), ("eps_abs", "eps_rel"), Method(FIRST_ORDER), fixed={"max_iters": _MANY}, time_option="time_limit_secs",
        met_time_limit=lambda raw: "time_limit_secs" in raw["info"]["status"],
        details=lambda raw: {"linear_solver": str(raw["info"]["lin_sys_solver"])},
    ),
    "CLARABEL": Backend(
        Package("clarabel"), _GAPS, Method(INTERIOR), fixed={"max_iter": _MANY_NEWTON}, time_option="time_limit",
        thread_option="max_threads", met_time_limit=lambda raw: str(raw.status) == "MaxTime",
        reading={"accept_unknown": True},  # the point where it cannot go on is often good
    ),
    "HIGHS": Backend(
        Package("highspy"),
        ("kkt_tolerance",),  # one for all that it checks: an answer that meets only some of its tolerances it calls "unknown"
        Method(SIMPLEX, cones=_LINEAR),
        # "ipm" would be HiPO where highspy-extras is installed and IPX elsewhere: both go by their own names.
        {
            "simplex": Method(SIMPLEX, {"solver": "simplex"}, cones=_LINEAR),
            "ipx": Method(INTERIOR, {"solver": "ipx", "run_crossover": "off"}, cones=_LINEAR),
            "hipo": Method(INTERIOR, {"solver": "hipo", "run_crossover": "off"}, needs=Package("highspy-extras", "highspy_extras")),
            "pdlp": Method(FIRST_ORDER, {"solver": "pdlp"}, cones=_LINEAR),
            "hipdlp": Method(FIRST_ORDER, {"solver": "hipdlp"}, cones=_LINEAR),
        },
        fixed={"output_flag": False}, time_option="time_limit", thread_option="threads", range=(1e-10, float("inf")),
        met_time_limit=lambda raw: raw["model_status"] == "kTimeLimit", cones=frozenset({"linear", "squares"}),
    ),
    "PDLP": Backend(
        Package("ortools"),
        tuple(f"termination_criteria/simple_optimality_criteria/eps_optimal_{kind}" for kind in ("absolute", "relative")),
        Method(FIRST_ORDER),
        fixed={"presolve_options": {"use_glop": True}},  # CVXPY's default: it finds the bounds among the rows
        time_option="termination_criteria/time_sec_limit", thread_option="num_threads",
        met_time_limit=lambda raw: raw["out_of_time"], interface=pdlp_interface,
    ),
    "OSQP": Backend(
        Package("osqp"), ("eps_abs", "eps_rel"), Method(FIRST_ORDER), fixed={"max_iter": _MANY}, time_option="time_limit",
        met_time_limit=lambda raw: "time limit" in raw.info.status,
    ),
    "PROXQP": Backend(Package("proxsuite"), ("eps_abs", "eps_rel"), Method(INTERIOR), fixed={"max_iter": _MANY_NEWTON * 10}),
    "PIQP": Backend(
        Package("piqp"), ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"), Method(INTERIOR),
        fixed={"max_iter": _MANY_NEWTON, "compute_timings": True},
    ),
    "QOCO": Backend(
        Package("qoco"), ("abstol", "reltol"), Method(INTERIOR),
        {"gpu": Method(INTERIOR, {"algebra": "cuda"}, needs=Package("qoco-cuda", "qoco_cuda"), device=no_gpu)},
        fixed={"max_iters": _MANY_NEWTON},
    ),
    "CVXOPT": Backend(
        Package("cvxopt"), ("abstol", "reltol", "feastol"), Method(INTERIOR),
        {"robust": Method(INTERIOR, {"kktsolver": "robust"})},  # CVXPY's own factorisation: about twice the time, tighter answers
        fixed={"max_iters": _MANY_NEWTON},
    ),
    "SDPA": Backend(
        Package("sdpa-python", "sdpap"), ("epsilonStar", "epsilonDash"), Method(INTERIOR),
        # Beyond its own bounds of 1e5 it takes a programme for unbounded.
        fixed={"maxIteration": _MANY_NEWTON, "lowerBound": -1e20, "upperBound": 1e20}, thread_option="numThreads",
    ),
    "MOREAU": Backend(
        Package("moreau"), tuple(f"ipm_settings/{name}" for name in _GAPS), Method(INTERIOR),
        {"gpu": Method(INTERIOR, {"device": "cuda"}, Package("moreau-cuda13", "moreau_cuda", also=("moreau-cuda12",)), device=no_gpu)},
        # On programmes it would choose active sets, with another tolerance.
        fixed={"max_iter": _MANY_NEWTON, "device": "cpu", "solver": "ipm"},
        time_option="time_limit", met_time_limit=lambda raw: str(raw.status) == "MaxTime", reading={"accept_unknown": True},
    ),
}  # fmt: skip

BACKENDS: dict[str, Backend] = {
    **FREE,
    "QPALM": Backend(Package("qpalm"), ("eps_abs", "eps_rel"), Method(FIRST_ORDER), fixed={"max_iter": _MANY}, time_option="time_limit"),
    "MPAX": Backend(
        Package("mpax"), ("eps_abs", "eps_rel"), Method(FIRST_ORDER, device=partial(obstacle, "cpu")),
        {
            "gpu": Method(FIRST_ORDER, {"device": "gpu"}, device=partial(obstacle, "gpu")),
            "halpern": Method(FIRST_ORDER, _HALPERN, device=partial(obstacle, "cpu"), cones=_LINEAR),
            "halpern_gpu": Method(FIRST_ORDER, {**_HALPERN, "device": "gpu"}, device=partial(obstacle, "gpu"), cones=_LINEAR),
        },
        fixed={"device": "cpu", "algorithm": "raPDHG"}, interface=mpax_interface,
    ),
    "CUPDLPX": Backend(
        Package("cupdlpx"), ("OptimalityTol", "FeasibilityTol"), Method(FIRST_ORDER, device=no_gpu), fixed={"OutputFlag": False},
        time_option="TimeLimit", met_time_limit=lambda raw: raw["out_of_time"], interface=cupdlpx_interface, cones=_LINEAR,
    ),
    "COSMO": Backend(Package("cosmopy"), ("eps_abs", "eps_rel"), Method(FIRST_ORDER), fixed={"max_iter": _MANY}, time_option="time_limit"),
    "CUCLARABEL": Backend(
        Package("cupy", "juliacall"), _GAPS, Method(INTERIOR),
        refusal="CVXPY passes no options on to CUCLARABEL: neither a tolerance nor a limit of time",
    ),
    "CUOPT": Backend(
        Package("cuopt-cu13", "cuopt", also=("cuopt-cu12",)), ("optimality",),
        Method(SIMPLEX, device=no_gpu),  # on linear programmes all three at once; the first that gets there ends it
        # CVXPY drops options that cuOpt does not have without a word.
        {
            "pdlp": Method(FIRST_ORDER, {"solver_method": "1"}, device=no_gpu),
            "simplex": Method(SIMPLEX, {"solver_method": "2"}, device=no_gpu),
            "barrier": Method(INTERIOR, {"solver_method": "3"}, device=no_gpu),
        },
        time_option="time_limit", thread_option="num_cpu_threads",
    ),
    "MOSEK": Backend(
        Package("mosek"),
        tuple(f"mosek_params/MSK_DPAR_INTPNT_{name}" for name in ("TOL_PFEAS", "TOL_DFEAS", "TOL_REL_GAP"))
        + tuple(f"mosek_params/MSK_DPAR_INTPNT_CO_TOL_{name}" for name in ("PFEAS", "DFEAS", "REL_GAP")),
        Method(INTERIOR), time_option="mosek_params/MSK_DPAR_OPTIMIZER_MAX_TIME",
        thread_option="mosek_params/MSK_IPAR_NUM_THREADS", range=(1e-14, 1.0), is_commercial=True,
    ),
    "GUROBI": Backend(
        Package("gurobipy"), ("FeasibilityTol", "OptimalityTol", "BarConvTol", "BarQCPConvTol"), Method(INTERIOR),
        time_option="TimeLimit", thread_option="Threads", range=(1e-9, 1e-2), is_commercial=True,
    ),
    "COPT": Backend(
        Package("coptpy"), ("FeasTol", "DualTol"), Method(INTERIOR), time_option="TimeLimit", thread_option="Threads",
        range=(1e-9, 1e-4), is_commercial=True,
    ),
    "XPRESS": Backend(
        Package("xpress"), ("feastol", "optimalitytol", "bargaptarget"), Method(INTERIOR), time_option="timelimit",
        thread_option="threads", range=(1e-12, 1e-1), is_commercial=True,
    ),
    "CPLEX": Backend(
        Package("cplex"),
        tuple(
            f"cplex_params/{name}"
            for name in ("simplex.tolerances.feasibility", "simplex.tolerances.optimality", "barrier.convergetol", "barrier.qcpconvergetol")
        ),
        Method(INTERIOR), time_option="cplex_params/timelimit", thread_option="cplex_params/threads", range=(1e-9, 1e-1),
        is_commercial=True,
    ),
    "KNITRO": Backend(
        Package("knitro"), ("feastol", "opttol"), Method(INTERIOR), time_option="maxtime_real", thread_option="threads", is_commercial=True
    ),
}  # fmt: skip
