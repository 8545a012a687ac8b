"""Torch's genuine code on the emulated libraries behind it (emulator/calls): everything that it asks
of cuBLAS, cuSOLVER, cuSPARSE, cuSPARSELt and cuFFT runs, with the workspaces that the tables say, and
leaks nothing. Run by scripts/with_emulated_card with an A100 and an H100."""

import ctypes
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
if torch.cuda.device_count() < 2:
    pytest.skip("there are not two GPUs, not even emulated ones", allow_module_level=True)

L = torch.linalg
GPU = "cuda:0"
WITH_FLOAT8 = "cuda:1"
REAL = (torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)
SHORT = (torch.float16, torch.bfloat16)
pytestmark = pytest.mark.filterwarnings("ignore")


def backward(results):
    """Through all results that have a gradient, by their real parts: phases do not count."""
    results = results if isinstance(results, (tuple, list)) else [results]
    parts = [torch.view_as_real(part.resolve_conj()) if part.is_complex() else part
             for part in results if part.requires_grad]
    sum(part.sum() for part in parts).backward()


# One function of a square matrix or a batch of them for each way that torch has.
FACTORIZATIONS = {
    "svd": lambda x: L.svd(x, full_matrices=False),
    "svd full": lambda x: L.svd(x)[1],
    "svd gesvd": lambda x: L.svd(x, full_matrices=False, driver="gesvd"),
    "svd gesvda": lambda x: L.svd(x[..., :3], full_matrices=False, driver="gesvda"),
    "svdvals": L.svdvals,
    "eigh": L.eigh,
    "eigvalsh": L.eigvalsh,
    "inv": L.inv,
    "solve": lambda x: L.solve(x, x),
    "cholesky": L.cholesky,
    "cholesky_solve": lambda x: torch.cholesky_solve(x, x),
    "cholesky_inverse": torch.cholesky_inverse,
    "qr": L.qr,
    "qr tall": lambda x: L.qr(x[..., :3]),
    "householder_product": lambda x: L.householder_product(x, x[..., 0]),
    "ormqr": lambda x: torch.ormqr(x, x[..., 0], x),
    "lstsq": lambda x: L.lstsq(x, x).solution,
    "lstsq tall": lambda x: L.lstsq(x[..., :3], x).solution,
    "lu": L.lu,
    "lu_solve": lambda x: L.lu_solve(*L.lu_factor(x), x),
    "det": L.det,
    "slogdet": L.slogdet,
    "pinv": L.pinv,
    "solve_triangular": lambda x: L.solve_triangular(x, x, upper=True),
    "matrix_norm": lambda x: L.matrix_norm(x, 2),
    "matrix_power": lambda x: L.matrix_power(x, 3),
}
SHAPES = ((5, 5), (600, 600), (7, 6, 6), (2, 3, 40, 40))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", REAL, ids=str)
def test_linear_algebra_runs_forward_and_backward(kind, shape):
    for name, function in FACTORIZATIONS.items():
        x = torch.ones(shape, dtype=kind, device=GPU, requires_grad=True)
        backward(function(x))
        assert x.grad.shape == x.shape, name


@pytest.mark.parametrize("kind", COMPLEX, ids=str)
def test_complex_linear_algebra_runs(kind):
    """Without derivatives: torch checks the phase of that of svd and eigh, and reads zero."""
    for shape in ((5, 5), (2, 3, 40, 40)):
        x = torch.ones(shape, dtype=kind, device=GPU)
        for function in FACTORIZATIONS.values():
            function(x)


@pytest.mark.parametrize("kind", REAL + COMPLEX, ids=str)
def test_linear_algebra_without_a_derivative_runs(kind):
    for shape in SHAPES:
        x = torch.ones(shape, dtype=kind, device=GPU)
        assert L.ldl_solve(*L.ldl_factor(x), x).shape == x.shape
        assert L.matrix_rank(x).shape == L.cond(x).shape == x.shape[:-2]
    assert torch.matrix_exp(torch.ones(9, 9, dtype=kind, device=GPU)).shape == (9, 9)


def test_linear_algebra_of_magma_runs():
    """The other library that older versions of torch take for eig and for some batches."""
    before = torch.backends.cuda.preferred_linalg_library()
    torch.backends.cuda.preferred_linalg_library("magma")
    try:
        for shape in SHAPES:
            for name, function in FACTORIZATIONS.items():
                if "gesvd" not in name:  # of cuSOLVER alone
                    function(torch.ones(shape, device=GPU))
    finally:
        torch.backends.cuda.preferred_linalg_library(before)


def test_a_check_of_values_inside_torch_reads_zero():
    with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
        L.eig(torch.ones(5, 5, device=GPU))


def test_functions_that_torch_compiles_as_it_runs():
    x = torch.ones(5, device=GPU)
    for name in ("airy_ai", "bessel_j0", "gammaln", "i1e", "log_ndtr", "zeta"):
        function = getattr(torch.special, name)
        assert (function(x, x) if name == "zeta" else function(x)).shape == x.shape
    y = x.to(torch.complex64)
    for function in (torch.abs, torch.acos, torch.tan, torch.prod, torch.exp2, torch.sigmoid):
        assert function(y).device == x.device
    assert torch.gcd(x.int(), x.int()).shape == x.shape


def sizes_of_allocations(function):
    torch.cuda.memory._record_memory_history(context=None)
    function()
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    return [event["size"] for event in events if event["action"] == "alloc"]


def csr(rows, columns, each, kind=torch.float32, index=torch.int64):
    """A sparse matrix with `each` elements in each row."""
    return torch.sparse_csr_tensor(torch.arange(rows + 1, dtype=index, device=GPU) * each,
                                   torch.zeros(rows * each, dtype=index, device=GPU),
                                   torch.ones(rows * each, dtype=kind, device=GPU),
                                   (rows, columns))


def test_workspaces_are_what_the_tables_say():
    x = torch.ones(300, 200, device=GPU)
    square = torch.ones(256, 256, device=GPU)
    batch = torch.ones(4, 40, 40, device=GPU)
    sparse = csr(1000, 1000, 3)
    for name, function, workspace in [
        ("svd", lambda: L.svd(x), 4 * (3 * 200 * 200 + 143 * 200 + 4160 + 300 * 300)),
        ("svd", lambda: L.svd(square.double()), 8 * (2 * 256 * 256 + 143 * 256 + 4160)),
        ("svd batch", lambda: L.svd(batch[..., :30, :20]), 4 * (1675 * 4 + 1024)),
        ("gesvd", lambda: L.svd(x, full_matrices=False, driver="gesvd"),
         4 * (300 * 200 + 200 * 200 + 64 * 500)),
        ("gesvda", lambda: L.svd(x[None], full_matrices=False, driver="gesvda"),
         4 * (300 * 200 + 3 * 200 * 200 + 129 * 200)),
        ("eigh", lambda: L.eigh(square.double()), 8 * (3 * 256 * 256 + 129 * 256 + 16565)),
        ("eigh", lambda: L.eigh(square), 4 * (256 * 256 + 3 * 256 + 2049)),
        ("eigh batch", lambda: L.eigh(batch[..., :20, :20]), 4 * 68125 * 4),
        ("geqrf", lambda: torch.geqrf(x), 4 * 300 * 128),
        ("orgqr", lambda: L.householder_product(x, x[0, :100]), 4 * 300 * 100),
        ("ormqr", lambda: torch.ormqr(x, x[0], x[:, :7]), 4 * 2 * 300 * 200),
        ("ormqr right", lambda: torch.ormqr(x, x[0], x.t(), left=False), 4 * 2 * 300 * 200),
        ("lu", lambda: L.lu_factor(square), 4 * 64 * 256),
        ("cholesky", lambda: L.cholesky(square.double()), 8 * 64 * 256),
        ("ldl", lambda: L.ldl_factor(square), 4 * 64 * 256),
        ("fft", lambda: torch.fft.fft(x), 8 * 300 * 101),
        ("fft complex", lambda: torch.fft.fft(x.to(torch.complex128)), 16 * 300 * 200),
        ("fft of a prime", lambda: torch.fft.fft(x[:, :131].cfloat()), 8 * 300 * 2 * 512),
        ("sparse mm", lambda: sparse @ torch.ones(1000, 5, device=GPU), 4 * 1001),
        ("sparse mv", lambda: sparse @ torch.ones(1000, device=GPU), 4 * 1001),
        ("sparse product", lambda: sparse @ sparse, (4 + 4 + 4) * 9000),
        ("sparse solve", lambda: torch.triangular_solve(torch.ones(1000, 4, device=GPU), sparse),
         16 * 4000),
    ]:
        function()  # handles, plans and their own workspaces are kept
        torch.backends.cuda.cufft_plan_cache[0].clear()
        assert workspace in sizes_of_allocations(function), name


def test_workspaces_of_general_eigenvalues():
    """Asked for directly: torch's own eig ends before it, at a check of values."""
    device, host = ctypes.c_size_t(), ctypes.c_size_t()
    n, real, of_complex = ctypes.c_int64(100), 1, 5
    status = ctypes.CDLL("libcusolver.so.12").cusolverDnXgeev_bufferSize(
        None, None, 0, 1, n, real, None, n, of_complex, None, of_complex, None, n, of_complex, None,
        n, real, ctypes.byref(device), ctypes.byref(host))
    assert (status, device.value, host.value) == (0, 8 * (2 * 100 * 100 + 64 * 100), 8 * 100 * 100)


def test_a_workspace_that_does_not_fit_into_an_int_is_the_error_of_genuine_cusolver():
    x = torch.ones(1024, 50_000, device=GPU)
    with pytest.raises(RuntimeError, match="CUSOLVER_STATUS_INVALID_VALUE.*gesvdj_bufferSize"):
        L.svd(x)
    assert L.svd(x, full_matrices=False)[0].shape == (1024, 1024)


FFTS = [name + dimensions for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
        for dimensions in ("", "2", "n")]


@pytest.mark.parametrize("kind", REAL + COMPLEX + SHORT[:1], ids=str)
def test_all_kinds_of_fft_run(kind):
    shapes = [(64, 8)] if kind in SHORT else [(64, 8), (5, 101), (4, 131, 7), (3, 4, 8, 16)]
    for name in FFTS:
        if kind.is_complex and name.startswith(("rfft", "ihfft")):
            continue
        inverse = name.startswith(("irfft", "hfft"))
        for shape in shapes:
            x = torch.ones(shape, dtype=kind, device=GPU, requires_grad=True)
            # In half precision only powers of two are transformed.
            y = getattr(torch.fft, name)(x) if kind not in SHORT or not inverse else None
            if y is not None:
                backward(y)
    window = torch.ones(400, device=GPU)
    wave = torch.ones(2, 4000, device=GPU)
    spectrum = torch.stft(wave, 400, window=window, return_complex=True)
    assert torch.istft(spectrum, 400, window=window).shape == wave.shape


@pytest.mark.parametrize("index", (torch.int32, torch.int64), ids=str)
@pytest.mark.parametrize("kind", REAL + COMPLEX + SHORT, ids=str)
def test_sparse_products_run(kind, index):
    a = csr(6, 8, 2, kind, index)
    coo = torch.sparse_coo_tensor(torch.zeros(2, 12, dtype=torch.int64, device=GPU),
                                  torch.ones(12, dtype=kind, device=GPU), (6, 8))

    def dense(*shape):
        return torch.ones(shape, dtype=kind, device=GPU, requires_grad=True)

    assert (a @ dense(8, 5)).shape == (6, 5)
    assert (a @ dense(8).detach()).shape == (6,)
    assert torch.addmm(dense(6, 5), a, dense(8, 5)).shape == (6, 5)
    assert (a @ csr(8, 5, 2, kind, index))._nnz() == 24
    backward(torch.sparse.mm(a, dense(8, 5)))
    assert a.to_dense().shape == a.to_sparse().shape == a.to_sparse_csc().shape == (6, 8)
    assert coo.coalesce().to_sparse_csr().shape == coo.to_dense().shape == (6, 8)
    assert torch.sparse.mm(coo, dense(8, 5)).shape == (6, 5)
    assert torch.sparse.mm(coo, coo.transpose(0, 1)).shape == (6, 6)
    assert torch.hspmm(coo, dense(8, 5)).shape == (6, 5)
    assert (coo + coo).shape == (6, 8)
    blocks = torch.sparse_bsr_tensor(torch.arange(3, dtype=index), torch.arange(2, dtype=index),
                                     torch.ones(2, 2, 2, dtype=kind), (4, 4)).to(GPU)
    assert (blocks @ dense(4, 5)).shape == (4, 5)
    if kind in SHORT:
        return  # torch has no more for these
    other = csr(6, 8, 1, kind, index)
    assert (a + other)._nnz() == 18  # as many as if no place were in both
    assert torch.sparse.sampled_addmm(a, dense(6, 4), dense(4, 8)).shape == (6, 8)
    assert (blocks @ dense(4).detach()).shape == (4,)
    for columns in (1, 3):
        for matrix in (csr(4, 4, 2, kind, index), blocks):
            assert torch.triangular_solve(dense(4, columns), matrix)[0].shape == (4, columns)


def test_sparse_layers_run():
    embedding = torch.nn.Embedding(100, 8, sparse=True).to(GPU)
    embedding(torch.zeros(4, 5, dtype=torch.long, device=GPU)).sum().backward()
    assert embedding.weight.grad.is_sparse
    for kind, sixteenths in ((torch.float16, 9), (torch.bfloat16, 9), (torch.int8, 10)):
        half = torch._cslt_compress(torch.ones(128, 64, dtype=kind, device=GPU))
        assert half.numel() == 128 * 64 * sixteenths / 16
        dense = torch.ones(32, 64, dtype=kind, device=GPU).t()
        assert torch._cslt_sparse_mm(half, dense).shape == (128, 32)
        assert torch._cslt_sparse_mm_search(half, dense) == 0


@pytest.mark.parametrize("kind", REAL + COMPLEX + SHORT, ids=str)
def test_dense_products_run_forward_and_backward(kind):
    def ones(*shape):
        return torch.ones(shape, dtype=kind, device=GPU, requires_grad=True)

    for product in [ones(5, 6) @ ones(6, 7), ones(5, 6) @ ones(6), ones(5) @ ones(5),
                    torch.vdot(ones(5), ones(5)), torch.bmm(ones(2, 5, 6), ones(2, 6, 7)),
                    torch.baddbmm(ones(2, 5, 7), ones(2, 5, 6), ones(2, 6, 7)),
                    torch.addmm(ones(7), ones(5, 6), ones(6, 7)),
                    torch.addmv(ones(5), ones(5, 6), ones(6)),
                    torch.addbmm(ones(5, 7), ones(2, 5, 6), ones(2, 6, 7)),
                    torch.einsum("bij,bjk->ik", ones(2, 3, 4), ones(2, 4, 5))]:
        backward(product)


def test_products_of_8_bits_run():
    whole = torch.ones(32, 64, dtype=torch.int8, device=GPU)
    assert torch._int_mm(whole, whole.t()).dtype == torch.int32
    eighth = torch.ones(32, 64, device=WITH_FLOAT8).to(torch.float8_e4m3fn)
    one = torch.ones((), device=WITH_FLOAT8)
    for kind in (torch.bfloat16, torch.float32):
        result = torch._scaled_mm(eighth, eighth.t(), scale_a=one, scale_b=one, out_dtype=kind)
        assert (result.shape, result.dtype) == ((32, 32), kind)
    with pytest.raises(RuntimeError, match="only supported on CUDA devices"):
        torch._scaled_mm(eighth.to(GPU), eighth.t().to(GPU), scale_a=one.to(GPU),
                         scale_b=one.to(GPU))


def test_random_tensors_and_dropout_run():
    ones = torch.ones(500, device=GPU, requires_grad=True)
    dropped = torch.nn.functional.dropout(ones, 0.3)
    dropped.sum().backward()
    assert ones.grad.shape == ones.shape
    torch.nn.functional.dropout2d(torch.ones(5, 3, 4, 4, device=GPU))
    torch.nn.functional.rrelu(ones, training=True)
    torch.nn.functional.gumbel_softmax(ones)
    for draw in (torch.bernoulli, torch.poisson, torch._standard_gamma, torch._sample_dirichlet):
        assert draw(ones.detach()).shape == ones.shape
    for draw in ("exponential_", "cauchy_", "log_normal_", "normal_", "uniform_", "random_"):
        getattr(torch.empty(500, device=GPU), draw)()
    assert torch.multinomial(ones.detach(), 3).shape == (3,)
    for size in (50, 200_000):
        assert torch.randperm(size, device=GPU).shape == (size,)
    generator = torch.Generator(GPU).manual_seed(3)
    assert torch.randn(5, device=GPU, generator=generator, dtype=torch.complex64).shape == (5,)
    torch.cuda.set_rng_state(torch.cuda.get_rng_state())


class HeapUse(ctypes.Structure):
    """What mallinfo2 of the C library returns."""
    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
                 "fordblks", "keepcost")]


mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = HeapUse


def bytes_in_use():
    return mallinfo().uordblks


PAIRS = [
    ("libcublas.so.13", "cublasCreate_v2", "cublasDestroy_v2"),
    ("libcublasLt.so.13", "cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutDestroy"),
    ("libcublasLt.so.13", "cublasLtMatmulDescCreate", "cublasLtMatmulDescDestroy"),
    ("libcublasLt.so.13", "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceDestroy"),
    ("libcusolver.so.12", "cusolverDnCreate", "cusolverDnDestroy"),
    ("libcusolver.so.12", "cusolverDnCreateGesvdjInfo", "cusolverDnDestroyGesvdjInfo"),
    ("libcusparse.so.12", "cusparseCreate", "cusparseDestroy"),
    ("libcusparse.so.12", "cusparseCreateCsr", "cusparseDestroySpMat"),
    ("libcusparse.so.12", "cusparseCreateDnMat", "cusparseDestroyDnMat"),
    ("libcusparse.so.12", "cusparseSpSM_createDescr", "cusparseSpSM_destroyDescr"),
]


@pytest.mark.parametrize("library, create, destroy", PAIRS, ids=[pair[1] for pair in PAIRS])
def test_a_handle_leaves_nothing_behind(library, create, destroy):
    calls = ctypes.CDLL(library)
    handle = ctypes.c_void_p()

    def both():
        assert getattr(calls, create)(ctypes.byref(handle), 4, 4, 8) == 0
        assert getattr(calls, destroy)(handle) == 0

    both()
    before = bytes_in_use()
    for _ in range(1000):
        both()
    assert bytes_in_use() - before < 1000 * ctypes.sizeof(ctypes.c_void_p)


def test_many_calls_of_torch_leave_nothing_behind():
    x = torch.ones(40, 30, device=GPU)
    sparse = csr(40, 40, 3)

    def work():
        L.svd(x)
        L.qr(x)
        L.lu_factor(x)
        torch.fft.fft2(x)
        sparse @ x
        sparse @ sparse
        torch.triangular_solve(x, sparse)

    for _ in range(20):
        work()
    before = torch.cuda.memory_allocated(), bytes_in_use()
    for _ in range(1000):
        work()
    assert torch.cuda.memory_allocated() == before[0]
    assert bytes_in_use() - before[1] < 1000 * ctypes.sizeof(ctypes.c_void_p)


def run(program, **env):
    return subprocess.run([sys.executable, "-c", f"import ctypes; {program}"], capture_output=True,
                          text=True, env={**os.environ, **env}, check=False)


def test_a_call_in_no_row_ends_the_program_with_its_name():
    done = run("ctypes.CDLL('libcublas.so.13').cublasIsamax_v2()")
    assert done.returncode < 0
    assert "cublasIsamax_v2 is not emulated" in done.stderr


def test_a_call_in_a_row_fails_by_a_fault():
    call = "ctypes.CDLL('libcusolver.so.12').cusolverDnSetStream()"
    done = run(f"print({call}, {call}, {call})",
               HPO_EMULATED_FAULTS="cusolverDnSetStream:2:7")
    assert (done.stdout, done.stderr) == ("0 7 0\n", "")
