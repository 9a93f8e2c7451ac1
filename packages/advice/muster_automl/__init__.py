"""AutoML for tables: the program that the jobs of `muster automl` run. It needs scikit-learn
and pandas, and nothing of Muster.
"""
